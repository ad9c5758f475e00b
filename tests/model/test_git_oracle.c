/* Our file lists against git's, on random trees: 300 steps. tests/slow has the long run. */
#include "git_oracle.h"

static void random_edits(void **state)
{
	(void)state;
	const char *seed = getenv("VX_SEED"), *steps = getenv("VX_STEPS");
	if (seed) {
		go_run(strtoull(seed, NULL, 10), steps ? (uint32_t)atoi(steps) : 100);
		return;
	}
	uint32_t own = 0;
	for (uint64_t s = 1; s <= 4; s++) {
		fprintf(stderr, "# VX_SEED=%llu\n", (unsigned long long)s);
		own += go_run(s, 75);
	}
	assert_true(own > 150); /* else it was git that was compared with git */
	fprintf(stderr, "# %u times a directory was proven to hold the same\n", go_proven);
	assert_true(go_proven > 50);
}

/* What the long run has found, and what it cannot draw. */
static void fixed_trees(void **state)
{
	(void)state;
	/* a submodule whose repository is gone: git answers from the one around it, with "./" */
	go_fixed(
		"git init -q lib; git -C lib commit -q --allow-empty -m x; git add lib; rm -rf lib/.git; mkdir lib/.git; echo 1 >lib/f");
	/* ids of the other kind where nothing is tracked yet */
	go_fixed("rm -rf .git; git init -q --object-format=sha256 .; echo 1 >f");
	/* the executable bit is not looked at: what is recorded stays, what is new is 0644 */
	go_fixed(
		"echo 1 >a; echo 1 >b; echo 1 >c; chmod +x a; git add a b; git config core.fileMode false; chmod +x b c; chmod -x a; echo 2 >>a");
	go_fixed(
		"echo 1 >a; chmod +x a; ln -s a b; git add a b; git config core.fileMode false; rm a b; ln -s x a; echo 1 >b; chmod +x b");
	/* the index holds the id of converted bytes, and what converted them is no more: git says
	 * that nothing has changed */
	go_fixed(
		"echo '* text=auto' >.gitattributes; printf 'a\\r\\n' >f; touch -d 2020-01-01 f; git add .; : >.gitattributes; git add .gitattributes");
	go_fixed(
		"mkdir d; echo '* text=auto' >d/.gitattributes; printf 'a\\r\\n' >d/f; touch -d 2020-01-01 d/f; git add .; echo '*.c -text' >d/.gitattributes");
	go_fixed(
		"mkdir -p .git/info; echo '* text' >.git/info/attributes; printf 'a\\r\\n' >f; touch -d 2020-01-01 f; git add .; : >.git/info/attributes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_trees), cmocka_unit_test(random_edits)};
	return cmocka_run_group_tests_name("git_oracle", tests, NULL, NULL);
}
