import type { HeaderCredential, NoCredential } from '../core/index.ts'
import type { Applier } from './applier.ts'

/** Type `unauthenticated`: nothing is added. */
export const applyNone: Applier<NoCredential> = () => {}

/**
 * Sets one header to one value. A copy that is there already goes away: the header policy has dropped what the caller
 * sent, so this holds even where a route forgot to own the name (decisions §3.1).
 */
export const applyHeader: Applier<HeaderCredential> = (draft, credential) => {
  const { headers } = draft
  const { name } = credential
  for (let index = headers.length - 2; index >= 0; index -= 2) {
    if (headers[index] === name) headers.splice(index, 2)
  }
  headers.push(name, credential.value.reveal())
}
