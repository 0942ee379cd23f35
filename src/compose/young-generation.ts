import { setFlagsFromString } from 'node:v8'
import { returnMemoryAtRest } from './memory-at-rest.ts'

/**
 * Lets the memory for young objects grow as V8 would have it by default. The launcher starts with it small (ADR 0066), so
 * that loading the program, which makes much that stays, doesn't leave an idle process with 20 MiB that it never needs.
 * It shrinks again when there is no work (docs/adr/0306). Called by whoever has started to serve: small as it was, it would cost a third more CPU for each request.
 */
export function growYoungGeneration(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
  returnMemoryAtRest()
}
