# frozen_string_literal: true

module Heddle
  class Server
    class Metrics
      # The series of WebSockets, of messages by topic, and of HTTP::Client.
      module Messaging
        SOCKET_FAILURES = { failures: "protocol", too_slow: "slow", vanished: "timeout" }.freeze
        private_constant :SOCKET_FAILURES

        private

        def messaging
          web_sockets
          pubsub
          http_clients
        end

        def web_sockets
          socket_series("websockets", "gauge", "Open WebSockets.", open: {})
          socket_series("websockets_opened_total", "counter", "WebSockets opened.", opened: {})
          socket_series("websocket_messages_total", "counter", "Messages of WebSockets.",
                        received: { direction: "received" }, sent: { direction: "sent" })
          socket_series("websocket_bytes_total", "counter", "Bytes of the messages of WebSockets.",
                        received_bytes: { direction: "received" }, sent_bytes: { direction: "sent" })
          socket_series("websocket_failures_total", "counter", "WebSockets that the server ended, by the reason.",
                        **SOCKET_FAILURES.transform_values { |reason| { reason: } })
          socket_closes
        end

        # Of the codes that have occurred.
        def socket_closes
          family("websocket_closes_total", "counter", "WebSockets that have ended, by their close code.")
          each_with(:websockets) do |one, counts|
            counts.each do |key, count|
              code = key[/\Aclosed_(\d+)\z/, 1]
              sample("websocket_closes_total", count, worker: one[:index], code:) if code
            end
          end
        end

        def socket_series(name, type, help, **samples)
          family(name, type, help)
          each_with(:websockets) do |one, counts|
            samples.each { |key, labels| sample(name, counts[key], worker: one[:index], **labels) }
          end
        end

        # Other processes publish over the control socket, through the master.
        def pubsub
          one("pubsub_subscribers", "gauge", "Subscribers of topics.", :pubsub_subscribers)
          one("pubsub_topics", "gauge", "Topics that have subscribers.", :pubsub_topics)
          one("pubsub_published_total", "counter", "Messages published.", :pubsub_published)
          published = @master && @master[:pubsub_published]
          sample("pubsub_published_total", published, worker: "master") if published
          one("pubsub_delivered_total", "counter", "Messages given to subscribers, each of them counted.",
              :pubsub_delivered)
          one("pubsub_dropped_total", "counter", "Messages that subscribers were too slow for.", :pubsub_dropped)
          one("pubsub_resets_total", "counter", "Resets: the messages in between were gone.", :pubsub_resets)
          one("pubsub_closed_total", "counter", "Subscribers closed because they were too slow.", :pubsub_closed)
        end

        # Labelled by what is bounded: see WorkerStatus.
        def http_clients
          family("http_client_connections", "gauge", "Connections of Heddle::HTTP::Client.")
          each_client do |labels, client|
            sample("http_client_connections", client[:open] - client[:idle], **labels, state: "busy")
            sample("http_client_connections", client[:idle], **labels, state: "idle")
          end
          client_series("http_client_requests_waiting", "gauge", "Requests that wait for a connection.", :waiting)
          client_series("http_client_requests_total", "counter", "Requests sent.", :requests)
          client_series("http_client_connections_opened_total", "counter", "Connections opened.", :opened)
          client_series("http_client_waits_total", "counter", "How often requests waited for a connection.", :waits)
          client_series("http_client_stale_connections_total", "counter",
                        "Idle connections that a request found closed by the server.", :stale)
          client_series("http_client_wait_seconds_total", "counter",
                        "Seconds that requests have waited for a connection.", :wait_seconds)
          client_series("http_client_connect_seconds_total", "counter",
                        "Seconds that opening connections has taken.", :connect_seconds)
          client_series("http_client_answer_seconds_total", "counter",
                        "Seconds from requests to the heads of their answers.", :answer_seconds)
        end

        def client_series(name, type, help, key)
          family(name, type, help)
          each_client { |labels, client| sample(name, client[key], **labels) }
        end

        def each_client
          each_with(:http_clients) do |one, clients|
            clients.each { |client| yield({ worker: one[:index], origin: client[:origin] }, client) }
          end
        end
      end
    end
  end
end
