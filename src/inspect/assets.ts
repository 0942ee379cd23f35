import path from 'node:path'
import { readProgramFile, readStaticFile } from '../core/index.ts'
import { PAGE_LIBRARIES } from './page-libraries.ts'

/** A file of the page, ready to be sent. */
export interface Asset {
  readonly type: string
  readonly bytes: Buffer
}

const JS = 'text/javascript; charset=utf-8'
const TYPES: Readonly<Record<string, string>> = {
  '.js': JS,
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const loaded = new Map<string, Asset>()

/** A file of the page by its name below `/inspect/page/`, read once; undefined if it does not exist. */
export function asset(name: string): Asset | undefined {
  const known = loaded.get(name)
  if (known !== undefined) return known
  const library = Object.hasOwn(PAGE_LIBRARIES, name) ? PAGE_LIBRARIES[name] : undefined
  if (library === undefined && !/^[a-z][a-z-]*\.(?:js|css|svg|html)$/.test(name)) return undefined
  const type = TYPES[path.extname(name)] ?? ''
  const made =
    read(() => readStaticFile(`inspect/page/${name}`), type) ??
    (library === undefined ? undefined : read(() => readProgramFile(`node_modules/${library}`), type))
  if (made !== undefined) loaded.set(name, made)
  return made
}

function read(bytesOf: () => Buffer, type: string): Asset | undefined {
  try {
    const bytes = bytesOf()
    if (type !== JS) return { type, bytes }
    // Browsers resolve packages by an import map, an inline script, which the content security policy refuses.
    const text = bytes.toString('utf8').replaceAll(/from\s*(["'])preact\1/g, 'from"./preact.js"')
    return { type, bytes: Buffer.from(text.replace(/\n\/\/# sourceMappingURL=\S+\s*$/, '\n')) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
