import { Failure } from '../core/index.ts'

/** An answer of which it is not clear what a client would read in it. Its detail names no content. */
export const unclear = (detail: string): Failure =>
  new Failure('backend_error', { detail: `filtered answer: ${detail}` })
