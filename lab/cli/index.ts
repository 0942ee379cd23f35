export { runLabConnect } from './lab-connect.ts'
export { runLabLogin } from './lab-login.ts'
export { runLabToken } from './lab-token.ts'
export { runLab } from './lab.ts'
