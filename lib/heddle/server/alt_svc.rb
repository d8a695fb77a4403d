# frozen_string_literal: true

module Heddle
  class Server
    # Tells clients that came by https where else the site is served, such as a proxy that speaks HTTP/3 (RFC 7838). An
    # application that sends the field itself keeps its own.
    class AltSvc
      NAME = "alt-svc"
      TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
      AUTHORITY = /"(?:[^"\\\s:]|\[[\h:.]+\])*:\d{1,5}"/
      PARAMETER = /[ \t]*;[ \t]*#{TOKEN}=(?:#{TOKEN}|"[^"\\]*")/
      # RFC 7838, section 3: h3=":443"; ma=86400, or several with commas between.
      ALTERNATIVE = /#{TOKEN}=#{AUTHORITY}(?:#{PARAMETER})*/
      VALUE = /\A(?:clear|#{ALTERNATIVE}(?:[ \t]*,[ \t]*#{ALTERNATIVE})*)\z/
      private_constant :NAME, :TOKEN, :AUTHORITY, :PARAMETER, :ALTERNATIVE, :VALUE

      # @param value [String]
      # @param source [Source] where it was written
      # @return [void]
      # @raise [ConfigurationError]
      def self.check(value, source)
        ports = value.scan(/:(\d{1,5})"/).flatten.map(&:to_i)
        return if value.match?(VALUE) && value.ascii_only? && ports.all? { |port| port.between?(1, 65_535) }

        raise ConfigurationError, "alt_svc (#{source}) must be clear, or alternatives such as " \
                                  "h3=\":443\"; ma=86400 (RFC 7838), but is #{value.inspect}"
      end

      # @param app [#call]
      # @param value [String]
      def initialize(app, value)
        @app = app
        @value = value
      end

      # @param env [Hash{String => Object}]
      # @return [Array] the application's response
      def call(env)
        answer = @app.call(env)
        env["rack.url_scheme"] == "https" ? ResponseField.add(answer, NAME, @value) : answer
      end
    end
  end
end
