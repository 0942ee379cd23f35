import type { Converted } from './convert.ts'

/** What of a module says how it hangs together with others. */
export type Linked = Pick<Converted, 'imports' | 'late' | 'exports' | 'stars'>

/**
 * Why the modules `looked` at, and those they import, can't be functions that wait for each other: one of them is not there or
 * has not the name that another imports (Node has a better sentence for it), or they import each other in a circle. Undefined
 * where all is well.
 */
export function misfit(linked: (id: string) => Linked | undefined, looked: Iterable<string>): string | undefined {
  const names = new Map<string, ReadonlySet<string>>()
  const open = new Set<string>()
  const visit = (id: string): string | undefined => {
    if (open.has(id)) return `${id} imports itself by way of others`
    if (names.has(id)) return undefined
    const module = linked(id)
    if (module === undefined) return `${id} is not there`
    open.add(id)
    for (const from in module.imports) {
      const problem = visit(from)
      if (problem !== undefined) return problem
      const given = names.get(from)
      for (const name of module.imports[from] ?? []) if (!given?.has(name)) return `${from} has no ${name} for ${id}`
    }
    const all = new Set(module.exports)
    for (const star of module.stars)
      for (const name of names.get(star) ?? []) {
        if (all.has(name)) return `${id} gives ${name} twice`
        all.add(name)
      }
    open.delete(id)
    names.set(id, all)
    const lost = module.late.find((late) => linked(late) === undefined)
    return lost === undefined ? undefined : `${lost} is not there`
  }
  for (const id of looked) {
    const problem = visit(id)
    if (problem !== undefined) return problem
  }
  return undefined
}
