export { diffLines } from 'diff';
