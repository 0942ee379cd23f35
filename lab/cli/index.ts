export { LAB_LOGIN_SPEC } from './lab-login.ts'
export { LAB_TOKEN_SPEC } from './lab-token.ts'
export { LAB_SPEC, runLab } from './lab.ts'
