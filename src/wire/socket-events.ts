import type { Socket } from 'node:net'

/** What is heard of a socket. */
export interface SocketEvents {
  readonly onData: (bytes: Buffer) => void
  /** The peer has ended its side. */
  readonly onEnd: () => void
  readonly onError: (error: Error) => void
  readonly onClose: () => void
  /** What was written is out. */
  readonly onDrain: () => void
}

/** From here on `events` hears of a socket; gives what ends that. */
export function hear(socket: Socket, { onData, onEnd, onError, onClose, onDrain }: SocketEvents): () => void {
  socket.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose).on('drain', onDrain)
  return () =>
    socket.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose).off('drain', onDrain)
}
