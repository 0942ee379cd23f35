import { LAB_PORT_OPTIONS } from '../../lab/cli/lab-ports.ts'

/** Each port of a lab that may run beside others: none is the default of its option, which is a port of every lab. */
export const LAB_PORT_NAMES: readonly string[] = Object.values(LAB_PORT_OPTIONS)
/** Arguments of `extauth lab`: whatever is free. */
export const ANY_LAB_PORT: readonly string[] = LAB_PORT_NAMES.flatMap((name) => [`--${name}`, '0'])
