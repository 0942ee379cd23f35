export { COMMANDS } from './command-table.ts'
export { main } from './main.ts'
