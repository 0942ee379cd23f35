// Files of prom-client that are imported directly and have no types.
declare module 'prom-client/lib/cluster.js' {
  import { AggregatorRegistry } from 'prom-client'
  export default AggregatorRegistry
}
declare module 'prom-client/lib/counter.js' {
  import { Counter } from 'prom-client'
  export default Counter
}
declare module 'prom-client/lib/gauge.js' {
  import { Gauge } from 'prom-client'
  export default Gauge
}
declare module 'prom-client/lib/registry.js' {
  import { Registry } from 'prom-client'
  export default Registry
}
declare module 'prom-client/lib/metrics/*.js' {
  import type { DefaultMetricsCollectorConfiguration, Registry, RegistryContentType } from 'prom-client'
  export default function collect(
    registry: Registry,
    options: DefaultMetricsCollectorConfiguration<RegistryContentType>,
  ): void
}
