export { Lexer } from 'marked';
