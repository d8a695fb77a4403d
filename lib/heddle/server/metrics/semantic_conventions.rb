# frozen_string_literal: true

module Heddle
  class Server
    class Metrics
      # The same numbers by the names of OpenTelemetry's semantic conventions, as its exporter for Prometheus writes
      # them, so that dashboards made for these names show Heddle, too.
      module SemanticConventions
        VERSIONS = { 10 => "1.0", 11 => "1.1", 20 => "2" }.freeze
        private_constant :VERSIONS

        private

        def semantic_conventions
          @prefix = ""
          request_durations
          active_requests
          process_usage
          database_pools
          client_connections
        end

        def request_durations
          name = "http_server_request_duration_seconds"
          family(name, "histogram", "Duration of HTTP server requests.")
          each_with(:durations) do |one, all|
            all.each do |request, counts|
              labels = { worker: one[:index], **request_labels(*request) }
              histogram_samples(name, labels, counts[..-2], HTTP::Engine::DURATION_BOUNDS, counts.last / 1e9)
            end
          end
        end

        def request_labels(method, scheme, version, status)
          labels = { http_request_method: method, url_scheme: scheme }
          return labels if status.zero?

          labels.merge!(http_response_status_code: status, network_protocol_version: VERSIONS.fetch(version))
          status >= 500 ? labels.merge(error_type: status) : labels
        end

        def active_requests
          family("http_server_active_requests", "gauge", "Number of active HTTP server requests.")
          each_with(:active) do |one, active|
            counts = one[:durations].to_h { |request, _| [request.first(2), 0] }
            counts.merge(active.to_h).each do |(http_request_method, url_scheme), count|
              sample("http_server_active_requests", count, worker: one[:index], http_request_method:, url_scheme:)
            end
          end
        end

        def process_usage
          one("process_cpu_time_seconds_total", "counter", "Total CPU seconds.", :cpu)
          one("process_memory_usage_bytes", "gauge", "The amount of physical memory in use.", :memory)
          one("process_uptime_seconds", "gauge", "The time the process has been running.", :uptime)
        end

        def database_pools
          name = "db_client_connection_"
          family("#{name}count", "gauge", "Connections that are in the state.")
          each_named_pool do |labels, pool|
            { used: pool[:busy], idle: pool[:idle] }.each do |state, count|
              sample("#{name}count", count, **labels, db_client_connection_state: state) if count
            end
          end
          { "max" => [:limit, "gauge", "The maximum number of open connections allowed."],
            "pending_requests" => [:waiting, "gauge", "Pending requests for an open connection."],
            "timeouts_total" => [:timeouts, "counter", "Connection timeouts since the start."] }
            .each do |suffix, (key, type, help)|
              family(name + suffix, type, help)
              each_named_pool { |labels, pool| sample(name + suffix, pool[key], **labels) if pool[key] }
            end
        end

        def each_named_pool
          each_pool do |labels, pool|
            yield(labels.except(:pool).merge(db_client_connection_pool_name: labels[:pool]), pool)
          end
        end

        def client_connections
          family("http_client_open_connections", "gauge", "Outbound connections that are active or idle.")
          each_with(:http_clients) do |one, origins|
            origins.each do |counts|
              { active: counts[:open] - counts[:idle], idle: counts[:idle] }.each do |state, count|
                sample("http_client_open_connections", count, worker: one[:index], http_connection_state: state,
                                                              **server_labels(counts[:origin]))
              end
            end
          end
        end

        def server_labels(origin)
          match = %r{\A\w+://(.+):(\d+)\z}.match(origin)
          match ? { server_address: match[1], server_port: match[2] } : { server_address: origin }
        end
      end
    end
  end
end
