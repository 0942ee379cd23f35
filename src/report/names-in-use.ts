/** Label values in use, by label, to merge counters of several processes. */
export type NamesInUse = Readonly<Record<'route' | 'name' | 'upstream', readonly string[]>>
