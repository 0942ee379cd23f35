export { carryStdio } from './carry.ts'
export type { StdioWay } from './way.ts'
