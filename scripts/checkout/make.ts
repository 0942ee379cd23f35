import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { rolldown } from 'rolldown'
import { parseSync, transformSync } from 'rolldown/utils'
import { ascii } from '../ascii.ts'
import { type Converted, convert, packageOf } from './convert.ts'
import { misfit } from './links.ts'
import { type Section, section } from './places.ts'
import type { Form } from './start.ts'

/**
 * Writes into `folder` the form from which the checkout at `root` starts while some of its sources are edited (docs/adr/0370): each
 * source a function of its own in one file, and the parts of the `bundled` packages that they ask for in another. Throws where a
 * source can't be such a function.
 */
export async function makeCheckoutForm(root: string, folder: string, bundled: ReadonlySet<string>): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const modules = new Map<string, Converted>()
  for (const name of globSync('{src,lab}/**/*.ts', { cwd: root, exclude: ['src/inspect/page/**'] }).sort())
    try {
      modules.set(
        name,
        convert({ parseSync, transformSync }, name, readFileSync(path.join(root, name), 'utf8'), bundled),
      )
    } catch (cause) {
      throw new Error(`${name}: ${(cause as Error).message}`, { cause })
    }
  const problem = misfit((name) => modules.get(name), modules.keys())
  if (problem !== undefined) throw new Error(problem)
  const sections: Section[] = []
  let text = "'use strict';({\n"
  let line = 1
  for (const [name, { code, mappings }] of modules) {
    sections.push(section(line + 1, path.relative(folder, path.join(root, name)), mappings))
    text += `${ascii(code)},\n`
    line += code.split('\n').length
  }
  const packages = [...new Set([...modules.values()].flatMap((module) => module.packages))].sort()
  const written = {
    'modules.js': `${text}})\n//# sourceMappingURL=modules.js.map\n`,
    'packages.js': `(function (module, exports, require) {${ascii(await packagesText(root, packages, bundled))}\n})`,
  }
  const sum = (name: keyof typeof written): string => createHash('sha256').update(written[name]).digest('base64')
  const form: Form = {
    bundled: [...bundled],
    packages,
    sums: { 'modules.js': sum('modules.js'), 'packages.js': sum('packages.js') },
    modules: Object.fromEntries(
      [...modules].map(([name, { imports, late, exports, stars }]) => [
        name,
        JSON.stringify({ imports, late, exports, stars }),
      ]),
    ),
  }
  for (const [name, content] of Object.entries(written)) writeFileSync(path.join(folder, name), content)
  writeFileSync(path.join(folder, 'modules.js.map'), JSON.stringify({ version: 3, sections }))
  writeFileSync(path.join(folder, 'modules.json'), JSON.stringify(form))
  await writeStart(folder)
}

/** What is asked for of packages, each part loaded when it is first asked for, as an import of all of it gives it. */
async function packagesText(root: string, packages: readonly string[], bundled: ReadonlySet<string>): Promise<string> {
  const virtual = new Map(
    packages.map((part, at) => [path.join(root, `part-${at}.mjs`), `import * as all from '${part}'\nexport { all }`]),
  )
  const entry = path.join(root, 'packages.cjs')
  const given = packages.map((part, at) => `'${part}': () => require('./part-${at}.mjs').all`)
  virtual.set(entry, `module.exports = {${given.join(',\n')}}`)
  await using build = await rolldown({
    cwd: root,
    input: { packages: entry },
    platform: 'node',
    external: (id) => !/^[./]/.test(id) && !bundled.has(packageOf(id) ?? ''),
    plugins: [
      {
        name: 'parts of packages',
        resolveId: (id) => [...virtual.keys()].find((file) => file === path.resolve(root, id)),
        load: (id) => virtual.get(id),
      },
    ],
  })
  const { output } = await build.generate({ format: 'cjs', keepNames: true, comments: false, codeSplitting: false })
  return output[0].code
}

/** start.ts as the launcher loads it. */
async function writeStart(folder: string): Promise<void> {
  await using build = await rolldown({ input: path.join(import.meta.dirname, 'start.ts'), platform: 'node' })
  await build.write({ dir: folder, format: 'cjs', entryFileNames: 'start.cjs' })
}
