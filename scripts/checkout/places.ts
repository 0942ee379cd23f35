import { SourceMap } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** Where in a file of many modules the code of one begins, and what it was made of: a section of an index map. */
export interface Section {
  readonly offset: { readonly line: number; readonly column: 0 }
  readonly map: ConstructorParameters<typeof SourceMap>[0]
}

/** `line`: of the first line that `mappings` is of, counted from 0. `source`: from the folder of the file. */
export const section = (line: number, source: string, mappings: string): Section => ({
  offset: { line, column: 0 },
  map: { version: 3, file: '', sources: [source], sourcesContent: [], sourceRoot: '', names: [], mappings },
})

/**
 * From here on stacks name the sources, as they do where these run. `sectionsOf` says by its name what a file is made of; it is
 * asked when a stack is read, so that a start pays nothing for it.
 */
export function nameSources(sectionsOf: (file: string) => readonly Section[] | undefined): void {
  const placeOf = (site: NodeJS.CallSite & { toString(): string }): string => {
    const [file, line, column] = [site.getFileName() ?? '', site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0]
    // The line before the first has what a module asks for.
    const found = sectionsOf(file)?.findLast(({ offset }) => offset.line <= line)
    const entry = found && new SourceMap(found.map).findEntry(Math.max(0, line - 1 - found.offset.line), column - 1)
    if (entry === undefined || !('originalSource' in entry)) return site.toString()
    const source = pathToFileURL(path.resolve(path.dirname(file), entry.originalSource)).href
    const place = `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
    return site.toString().replace(`${file}:${line}:${column}`, () => place)
  }
  Error.prepareStackTrace = (error, sites) =>
    [String(error), ...sites.map((site) => `    at ${placeOf(site)}`)].join('\n')
}
