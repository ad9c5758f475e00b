#include "check.h"
#include "lexer.h"

#include <stdlib.h>
#include <string.h>

int main(void)
{
	struct lexer l = { .at = "let x1 = 2.5e1 # comment\nprint max(x1, ?)" };
	static const enum token_kind want[] = { TOKEN_KEYWORD, TOKEN_NAME, TOKEN_SIGN, TOKEN_NUMBER, TOKEN_NEWLINE, TOKEN_KEYWORD, TOKEN_KEYWORD,
		                                TOKEN_SIGN, TOKEN_NAME, TOKEN_SIGN, TOKEN_BAD, TOKEN_SIGN, TOKEN_END, TOKEN_END };
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct token t = lexer_next(&l);
		CHECK(t.kind == want[i]);
		if (i == 3)
			CHECK(t.number == 25);
		if (i == 5)
			CHECK(t.line == 2);
		if (i == 10) {
			char *text = token_text(&t);
			CHECK(strcmp(text, "'?'") == 0);
			free(text);
		}
	}
	return CHECK_DONE();
}
