export { convert, type Converted } from './convert.ts'
