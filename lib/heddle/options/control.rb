# frozen_string_literal: true

module Heddle
  module Options
    # Metrics, health checks and commands.
    CONTROL = [
      Option.new(name: :control, unit: :list, none: "off", argument: "ADDRESS",
                 default_words: "a unix socket for the current folder",
                 example: 'control ["tcp://127.0.0.1:9293"]',
                 text: "addresses for metrics, health checks and commands: unix:path, tcp://host:port or off; may be " \
                       "repeated",
                 reason: "Set it when a monitoring system reads metrics over TCP, or two servers share a folder",
                 details: "The default socket is tmp/heddle-control.sock if the server's user, but not every user, " \
                          "may write to the folder tmp. Otherwise it is in a folder for the user's temporary files. " \
                          "Only the server's user may open the socket. Over TCP, only metrics and health checks are " \
                          "available. See [Observability](observability.md)."),
      Option.new(name: :health_paths, unit: :list, argument: "PATHS", none: "off", default: %w[/up],
                 default_words: "/up, and Rails' config.silence_healthcheck_path",
                 example: 'health_paths "/up", "/healthz"',
                 text: "paths of health checks; requests for them don't wait for others, are not logged, and get 503 " \
                       "while the server stops",
                 reason: "Set it when the load balancer checks another path",
                 details: "Admission limits such as max_requests don't apply to these requests, so the application " \
                          "should answer them without calling other services. See [Behind a " \
                          "balancer](processes.md#behind-a-balancer).")
    ].freeze
  end
end
