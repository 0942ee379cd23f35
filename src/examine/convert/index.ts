export { CedarError, cedarToYaml } from './cedar.ts'
export { convert, type Converted } from './convert.ts'
