/** The names that are labels of counters, by label, for who has the counters of several processes. */
export type NamesInUse = Readonly<Record<'route' | 'name' | 'upstream', readonly string[]>>
