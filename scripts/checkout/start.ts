import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire, getCompileCacheDir } from 'node:module'
import path from 'node:path'
import { types } from 'node:util'
import { pathToFileURL } from 'node:url'
import { constants, Script } from 'node:vm'
import { convert } from './convert.ts'
import { type Linked, misfit } from './links.ts'
import { nameSources, type Section, section } from './places.ts'

/** What make.ts writes beside the code. */
export interface Form {
  /** Packages that are inside, and the parts of them that are. */
  readonly bundled: readonly string[]
  readonly packages: readonly string[]
  /** Sums of the files with code. */
  readonly sums: Readonly<Record<'modules.js' | 'packages.js', string>>
  /** How each hangs together with others, as JSON: most are never looked at. */
  readonly modules: Readonly<Record<string, string>>
}

type Exports = Readonly<Record<string, unknown>>
type Body = (
  of: (id: string) => Exports,
  byDefault: (id: string) => unknown,
  later: (id: string) => Promise<Exports>,
  meta: () => Partial<ImportMeta>,
) => Exports

// `import()` of a package, for which Node looks from the file that it stands in.
const LATE = { importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }

/** Node warns of `LATE` once, on standard error, where a program has lines of its log. Nobody who reads these can do anything about it. */
function keepQuietAboutLate(): void {
  const emitWarning = process.emitWarning.bind(process) as (...all: readonly unknown[]) => void
  process.emitWarning = (...all: readonly unknown[]) => {
    if (!String(all[0]).startsWith('vm.USE_MAIN_CONTEXT_DEFAULT_LOADER ')) emitWarning(...all)
  }
}

/** The files, and the places in them that code was made of. */
type Places = Map<string, readonly Section[]>

/**
 * Starts the checkout at `root`, of whose files those `changed` are others now than when its dist/ was made: these are converted
 * anew, the others are taken as they were. Gives false where that would not be the same as running the sources, or where
 * something for it is missing; nothing has been run then, and Node says best what is wrong.
 */
export function start(root: string, changed: readonly string[]): boolean {
  const load = createRequire(path.join(root, 'package.json'))
  const places: Places = new Map()
  let of: (id: string) => Exports
  try {
    const form = JSON.parse(readFileSync(path.join(root, FOLDER, 'modules.json'), 'utf8')) as Form
    const anew = convertAnew(root, form, changed, load('rolldown/utils') as Parameters<typeof convert>[0], places)
    const packages = { exports: {} as Record<string, () => Exports> }
    const run = kept(root, 'packages.js', form) as (...all: unknown[]) => void
    run(packages, packages.exports, load)
    const bodies = { ...(kept(root, 'modules.js', form) as Record<string, Body>), ...anew }
    of = loader(root, bodies, packages.exports, load)
  } catch {
    return false
  }
  const file = path.join(root, FOLDER, 'modules.js')
  nameSources((name) => {
    if (name === file && !places.has(file))
      places.set(file, (JSON.parse(readFileSync(`${file}.map`, 'utf8')) as { sections: Section[] }).sections)
    return places.get(name)
  })
  keepQuietAboutLate()
  of('src/main.ts')
  return true
}

const FOLDER = 'dist/checkout'
const SOURCE = /^(?:src|lab)\/.*\.ts$/
/** So many take as long to convert as Node takes for all. */
const MOST = 200
/** The inspector's page, which is read where it lies. */
const PAGE = /^src\/inspect\/page\//

/** Throws where one of these, or the whole with them, is not what functions can be made of. */
function convertAnew(
  root: string,
  form: Form,
  changed: readonly string[],
  utils: Parameters<typeof convert>[0],
  places: Places,
): Record<string, Body> {
  const bundled = new Set(form.bundled)
  /** What is other than it was; undefined: no longer there. */
  const anew = new Map<string, Linked | undefined>()
  const old = (name: string): Linked | undefined =>
    form.modules[name] === undefined ? undefined : (JSON.parse(form.modules[name]) as Linked)
  const wanted = new Set(changed.filter((name) => !PAGE.test(name)))
  const bodies: Record<string, Body> = {}
  /** Names that others may import are gone. */
  let isLess = false
  for (const name of wanted) {
    if (wanted.size > MOST) throw new Error('most is edited')
    if (!SOURCE.test(name)) throw new Error(`${name} is no source`)
    const file = path.join(root, name)
    const before = old(name)
    if (!existsSync(file)) {
      anew.set(name, undefined)
      isLess = true
      continue
    }
    const module = convert(utils, name, readFileSync(file, 'utf8'), bundled)
    const unknown = module.packages.find((part) => !form.packages.includes(part))
    if (unknown !== undefined) throw new Error(`${unknown} is not inside`)
    anew.set(name, module)
    const names = new Set([...module.exports, ...module.stars])
    isLess ||= before !== undefined && ![...before.exports, ...before.stars].every((name) => names.has(name))
    for (const next of [...Object.keys(module.imports), ...module.late])
      if (form.modules[next] === undefined) wanted.add(next)
    // Not the name of the source, whose lines are others.
    const filename = `${file}.js`
    const sections = [section(1, file, module.mappings)]
    places.set(filename, sections)
    const map = Buffer.from(JSON.stringify({ version: 3, sections })).toString('base64')
    const code = `'use strict';({\n${module.code}})\n//# sourceMappingURL=data:application/json;base64,${map}`
    Object.assign(bodies, new Script(code, { filename, ...LATE }).runInThisContext())
  }
  const looked = isLess ? Object.keys(form.modules).filter((name) => !anew.has(name)) : []
  const linked = (name: string): Linked | undefined => (anew.has(name) ? anew.get(name) : old(name))
  const problem = misfit(linked, [...looked, ...Object.keys(bodies)])
  if (problem !== undefined) throw new Error(problem)
  return bodies
}

/** Gives what a module or package exports, and runs a module when it is first asked for. */
function loader(
  root: string,
  bodies: Readonly<Record<string, Body>>,
  packages: Readonly<Record<string, () => Exports>>,
  load: NodeJS.Require,
): (id: string) => Exports {
  const modules = new Map<string, Exports>()
  const of = (id: string): Exports => {
    const known = modules.get(id)
    if (known !== undefined) return known
    const made = bodies[id] && Object.freeze(bodies[id](of, byDefault, later, () => metaOf(path.join(root, id))))
    const given = made ?? packages[id]?.() ?? (load(id) as Exports)
    modules.set(id, given)
    return given
  }
  // As Node gives what a package of the other kind exports.
  const byDefault = (id: string): unknown =>
    types.isModuleNamespaceObject(of(id)) || id in packages ? of(id)['default'] : of(id)
  // Not before what runs now has ended.
  const later = (id: string): Promise<Exports> => Promise.resolve().then(() => of(id))
  return of
}

const metaOf = (filename: string): Partial<ImportMeta> => ({
  filename,
  dirname: path.dirname(filename),
  url: pathToFileURL(filename).href,
})

/**
 * What a script gives. What V8 has compiled of it is kept when the process ends, beside what Node keeps: that is what is
 * compiled before a script runs, a third of what a start needs. By command, since each runs other parts.
 */
function kept(root: string, name: keyof Form['sums'], form: Form): unknown {
  const filename = path.join(root, FOLDER, name)
  const command = /^[a-z]{1,20}$/.exec(process.argv[2] ?? '')?.[0] ?? ''
  const file = path.join(getCompileCacheDir() ?? '', `${name}.${command}`)
  // It belongs to one text and is whole: V8 itself looks at the length of the text only.
  const sumOf = (data: Buffer): Buffer => createHash('sha256').update(form.sums[name]).update(data).digest()
  const all = path.isAbsolute(file) && existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
  const data = all.subarray(32)
  const cachedData = sumOf(data).equals(all.subarray(0, 32)) ? data : undefined
  const script = new Script(readFileSync(filename, 'latin1'), { filename, ...LATE, ...(cachedData && { cachedData }) })
  const isKept = cachedData !== undefined && script.cachedDataRejected !== true
  process.once('exit', (code) => {
    // What ended with a failure, or helped only, has not come far.
    if (isKept || code !== 0 || command === '' || process.argv.includes('--help') || !path.isAbsolute(file)) return
    const compiled = script.createCachedData()
    try {
      writeFileSync(`${file}.${process.pid}`, Buffer.concat([sumOf(compiled), compiled]), { mode: 0o600 })
      renameSync(`${file}.${process.pid}`, file)
    } catch {
      // Nobody may write there, or there is no room: the next start compiles again.
    }
  })
  return script.runInThisContext()
}
