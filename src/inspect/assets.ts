import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { programFolder } from '../core/index.ts'

/** A file of the page, ready to be sent. */
export interface Asset {
  readonly type: string
  readonly bytes: Buffer
}

const PAGE = programFolder('inspect/page')
const require = createRequire(import.meta.url)
const JS = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'
const TYPES: Readonly<Record<string, string>> = {
  '.js': JS,
  '.css': CSS,
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The libraries as their packages have them; what they import by name gets an address here. */
const LIBRARIES: Readonly<Record<string, { readonly file: () => string; readonly type: string }>> = {
  'lib/preact.js': { file: () => inPackage('preact', 'dist/preact.mjs'), type: JS },
  'lib/hooks.js': { file: () => inPackage('preact', 'hooks/dist/hooks.mjs'), type: JS },
  'lib/htm.js': { file: () => inPackage('htm', 'dist/htm.module.js'), type: JS },
  'lib/uplot.js': { file: () => inPackage('uplot', 'dist/uPlot.esm.js'), type: JS },
  'lib/uplot.css': { file: () => inPackage('uplot', 'dist/uPlot.min.css'), type: CSS },
}

const inPackage = (name: string, file: string): string => {
  for (const folder of require.resolve.paths(name) ?? []) {
    const found = path.join(folder, name, file)
    try {
      readFileSync(found)
      return found
    } catch {
      // In another folder.
    }
  }
  throw new Error(`${name} is not installed, or has no ${file}`)
}

const loaded = new Map<string, Asset>()

/** A file of the page by its name below `/inspect/page/`, read once; undefined when there is none. */
export function asset(name: string): Asset | undefined {
  const known = loaded.get(name)
  if (known !== undefined) return known
  const library = Object.hasOwn(LIBRARIES, name) ? LIBRARIES[name] : undefined
  const type =
    library?.type ?? (/^[a-z][a-z-]*\.(?:js|css|svg|html)$/.test(name) ? TYPES[path.extname(name)] : undefined)
  if (type === undefined) return undefined
  const made = read(library?.file() ?? path.join(PAGE, name), type)
  if (made !== undefined) loaded.set(name, made)
  return made
}

function read(file: string, type: string): Asset | undefined {
  try {
    const bytes = readFileSync(file)
    if (type !== JS) return { type, bytes }
    // Browsers know no packages, and what would tell them of some is an inline script, which our policy refuses.
    const text = bytes.toString('utf8').replaceAll(/from\s*(["'])preact\1/g, 'from"./preact.js"')
    return { type, bytes: Buffer.from(text.replace(/\n\/\/# sourceMappingURL=\S+\s*$/, '\n')) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
