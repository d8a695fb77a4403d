# frozen_string_literal: true

module Heddle
  class Server
    # Adds the field Server-Timing to responses. The field lists the parts of the time that the request has spent until
    # the application returned, in milliseconds, and how often each part has begun. Browsers show it beside the request.
    class ServerTiming
      NAME = "server-timing"
      private_constant :NAME

      # @param account [Hash{Symbol => Object}] the time account of a request (seconds for each part, such as `query`),
      #   see {Request}
      # @return [String] the field's value
      def self.value(account)
        [*Account::PARTS, :other, :total].filter_map do |part|
          seconds = account[part] or next
          count = account[:waits][part]
          "#{part};dur=#{(seconds * 1000).round(1)}#{";desc=\"#{count} times\"" if count.to_i > 1}"
        end.join(", ")
      end

      # @param app [#call]
      # @param paths [Array<String>] the paths of requests whose responses get the field; each path includes the paths
      #   below it
      def initialize(app, paths)
        @app = app
        @paths = paths.map { |path| [path, "#{path.delete_suffix("/")}/"] }
      end

      # @param env [Hash{String => Object}]
      # @return [Object] the application's response
      def call(env)
        response = @app.call(env)
        path = env["PATH_INFO"]
        account = Account.current if @paths.any? { |one, below| path == one || path.start_with?(below) }
        account ? add(response, ServerTiming.value(account)) : response
      end

      private

      # The field is a list, so the value is appended to the one that the application may have set.
      def add(response, value)
        headers = response[1] if response.is_a?(Array)
        return response unless headers.is_a?(Hash)

        name = headers.each_key.find { |one| one.to_s.casecmp?(NAME) } || NAME
        [response[0], headers.merge(name => [*headers[name], value].join(", ")), *response.drop(2)]
      end
    end
  end
end
