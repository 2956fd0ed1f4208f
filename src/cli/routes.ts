// How is a group of commands shown? One short usage line each; flags that may be left out are told by the command's own help.
import { buildRouteMap } from '@stricli/core'
import type { RouteMap, RouteMapBuilderArguments } from '@stricli/core'
import type { Context } from './context.ts'

export function buildRoutes(options: Options): RouteMap<Context> {
  const routes = Object.entries(options.routes).map(([name, target]) => [name, short(target)] as const)
  return buildRouteMap<string, Context>({ ...options, routes: Object.fromEntries(routes) })
}

type Options = RouteMapBuilderArguments<string, Context>
type Target = Options['routes'][string]

const optionalFlag = / \[--(?:[^[\]]|\[[^\]]*\])*\](?:\.\.\.)?/g

function short(target: Target): Target {
  return {
    ...target,
    formatUsageLine: (args: Parameters<typeof target.formatUsageLine>[0]) =>
      target.formatUsageLine(args).replaceAll(optionalFlag, ''),
  }
}
