export { runOperator, type RunOperatorOptions } from './run-operator.ts'
