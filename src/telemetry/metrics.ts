// What do operators measure? One registry per process part (never a global), with Kubernetes' names where meanings match.
import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
// Only the parts in use: the package's entry also loads its process metrics, with OpenTelemetry and a cluster mode.
import CounterMetric from 'prom-client/lib/counter.js'
import GaugeMetric from 'prom-client/lib/gauge.js'
import HistogramMetric from 'prom-client/lib/histogram.js'
import MetricRegistry from 'prom-client/lib/registry.js'

/** The buckets of all volume operation histograms, in seconds (C-14). */
const operationBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600]

export interface Metrics {
  readonly registry: Registry
  counter<L extends string>(name: string, help: string, labels?: readonly L[]): Counter<L>
  gauge<L extends string>(
    name: string,
    help: string,
    labels?: readonly L[],
    collect?: (gauge: Gauge<L>) => void,
  ): Gauge<L>
  histogram<L extends string>(name: string, help: string, labels?: readonly L[], buckets?: number[]): Histogram<L>
  /** The Prometheus text of everything. */
  text(): Promise<string>
}

export function createMetrics(): Metrics {
  const registry = new MetricRegistry()
  // Asking for the same name twice gives the same metric, so that two parts may share one.
  const once = <M>(name: string, make: () => M): M => (registry.getSingleMetric(name) as M | undefined) ?? make()
  return {
    registry,
    counter: (name, help, labels = []) =>
      once(name, () => new CounterMetric({ name, help, labelNames: [...labels], registers: [registry] })),
    gauge: (name, help, labels = [], collect) =>
      once(
        name,
        () =>
          new GaugeMetric({
            name,
            help,
            labelNames: [...labels],
            registers: [registry],
            ...(collect
              ? {
                  collect() {
                    collect(this)
                  },
                }
              : {}),
          }),
      ),
    histogram: (name, help, labels = [], buckets = operationBuckets) =>
      once(name, () => new HistogramMetric({ name, help, labelNames: [...labels], buckets, registers: [registry] })),
    text: () => registry.metrics(),
  }
}
