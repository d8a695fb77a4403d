# frozen_string_literal: true

module Heddle
  class Server
    class Metrics
      # Repeats some metrics of {Families} with the names of OpenTelemetry's semantic conventions, as its exporter for
      # Prometheus writes them. Dashboards made for these names then work with Heddle. The table has the same form as in
      # {Families}.
      module SemanticConventions
        VERSIONS = { 10 => "1.0", 11 => "1.1", 20 => "2" }.freeze
        private_constant :VERSIONS

        class << self
          private

          def request_durations(one)
            one[:durations].to_a.flat_map do |request, counts|
              bounds = HTTP::Engine::DURATION_BOUNDS
              Families.histogram(counts[..-2], bounds, counts.last / 1e9, request_labels(*request))
            end
          end

          # If a request got no response, the engine counts the status 0.
          def request_labels(method, scheme, version, status)
            labels = { http_request_method: method, url_scheme: scheme }
            return labels if status.zero?

            labels.merge!(http_response_status_code: status, network_protocol_version: VERSIONS.fetch(version))
            status >= 500 ? labels.merge(error_type: status) : labels
          end

          # After the first request with a method and scheme, there is always a series for this pair. Its value is 0
          # while no such request runs.
          def active_requests(one)
            active = one[:active] or return
            counts = one[:durations].to_h { |request, _| [request.first(2), 0] }
            counts.merge(active.to_h).map do |(http_request_method, url_scheme), count|
              [count, { http_request_method:, url_scheme: }]
            end
          end

          def open_connections(client)
            match = %r{\A\w+://(.+):(\d+)\z}.match(client[:origin])
            labels = match ? { server_address: match[1], server_port: match[2] } : { server_address: client[:origin] }
            { active: client[:open] - client[:idle], idle: client[:idle] }.map do |state, count|
              [count, { http_connection_state: state, **labels }]
            end
          end
        end

        TABLE = {
          worker: [
            ["http_server_request_duration_seconds", "Duration of HTTP server requests.",
             ->(one) { request_durations(one) }],
            ["http_server_active_requests", "Number of active HTTP server requests.", ->(one) { active_requests(one) }],
            ["process_cpu_time_seconds_total", "Total CPU seconds.", :cpu],
            ["process_memory_usage_bytes", "The amount of physical memory in use.", :memory],
            ["process_uptime_seconds", "The time the process has been running.", :uptime]
          ],
          named_pool: [
            ["db_client_connection_count", "Connections in the state that the label names.",
             { busy: { db_client_connection_state: :used }, idle: { db_client_connection_state: :idle } }],
            ["db_client_connection_max", "The maximum number of open connections allowed.", :limit],
            ["db_client_connection_pending_requests", "Pending requests for an open connection.", :waiting],
            ["db_client_connection_timeouts_total", "Connection timeouts since the start.", :timeouts]
          ],
          server: [
            ["http_client_open_connections", "Outbound connections that are active or idle.",
             ->(client) { open_connections(client) }]
          ]
        }.freeze
      end
    end
  end
end
