export { main } from './main.ts'
export { ownCommand, printedPath } from './own-command.ts'
