import type { Socket } from 'node:net'

/** The handled events of a socket. */
export interface SocketEvents {
  readonly onData: (bytes: Buffer) => void
  /** The peer half-closed the connection. */
  readonly onEnd: () => void
  readonly onError: (error: Error) => void
  readonly onClose: () => void
  /** Written data was flushed. */
  readonly onDrain: () => void
}

/** Subscribes `events` to a socket; returns a function that unsubscribes. */
export function hear(socket: Socket, { onData, onEnd, onError, onClose, onDrain }: SocketEvents): () => void {
  socket.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose).on('drain', onDrain)
  return () =>
    socket.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose).off('drain', onDrain)
}
