import { chmod } from 'node:fs/promises'

/** Owner and group may connect: the group is how a neighbour is let in. */
const SOCKET_MODE = 0o660

/** Lets owner and group connect and nobody else, whatever the umask says. */
export async function restrictSocket(path: string): Promise<void> {
  await chmod(path, SOCKET_MODE)
}
