export { validate, type ValidationReport } from './validation.ts'
