export { addressText, parseListenAddress, type ListenAddress } from './address.ts'
export { bind, type BindOptions } from './bind.ts'
