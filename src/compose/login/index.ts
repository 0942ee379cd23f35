export { loginOutbound, openUserStore } from './user-login.ts'
