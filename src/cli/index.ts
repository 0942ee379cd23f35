export { main } from './main.ts'
export { ownCommand, printedPath } from './own-command.ts'
export { LAB_CONFIG } from './lab-config.ts'
