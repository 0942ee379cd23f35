import { Failure } from '../../core/index.ts'
import { SERVER_NAME } from '../server-json.ts'

export interface Position {
  readonly name: string
  readonly version: string
}

const MAX_CURSOR_LENGTH = 2048

/**
 * The cursor after an entry: its position in the total order, not an offset, so that it stays correct when entries
 * change between pages.
 */
export function encodeCursor(position: Position): string {
  return Buffer.from(JSON.stringify([position.name, position.version])).toString('base64url')
}

/** The position in a cursor of `encodeCursor`. Throws `bad_request` for other text. */
export function decodeCursor(cursor: string): Position {
  if (cursor.length > MAX_CURSOR_LENGTH) throw refused()
  let parts: unknown
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    throw refused()
  }
  if (!Array.isArray(parts) || parts.length !== 2) throw refused()
  const [name, version] = parts as readonly unknown[]
  if (typeof name !== 'string' || typeof version !== 'string' || !SERVER_NAME.test(name)) throw refused()
  const position = { name, version }
  // One text per position: base64url decoders skip unknown characters.
  if (encodeCursor(position) !== cursor) throw refused()
  return position
}

/** Whether a text is a cursor of `encodeCursor`. */
export function isCursor(text: string): boolean {
  try {
    decodeCursor(text)
    return true
  } catch {
    return false
  }
}

const refused = () => new Failure('bad_request', { detail: 'the cursor is invalid' })
