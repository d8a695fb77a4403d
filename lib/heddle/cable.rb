# frozen_string_literal: true

require "heddle/web_socket"

module Heddle
  # An Action Cable server without Action Cable's own threads. Its connections are WebSockets of Heddle, and C code
  # sends broadcasts to them. `config.heddle.cable = true` enables it.
  #
  # @api private
  module Cable
    Autoloads.add(self, "heddle/cable")

    # Raised if this version of Action Cable can't use a server other than its own.
    class UnsupportedError < OwnError; end

    # The WebSocket subprotocols of Action Cable and of AnyCable. The second one has positions, from which a client can
    # resume.
    PROTOCOL = "actioncable-v1-json"
    EXTENDED_PROTOCOL = "actioncable-v1-ext-json"

    UNSUPPORTED = "config.heddle.cable needs Action Cable of Rails 8.2, or the gem actioncable-next: add " \
                  "gem \"actioncable-next\" to the Gemfile, before Rails"
    private_constant :UNSUPPORTED

    # Makes `ActionCable.server` return Heddle's server.
    module Installed
      # @return [Server]
      def server = @heddle_server ||= Server.new
    end
    private_constant :Installed

    # Replaces Action Cable's own server.
    # @return [void]
    # @raise [UnsupportedError]
    def self.install
      require "action_cable"
      raise UnsupportedError, UNSUPPORTED unless ::ActionCable::Server.const_defined?(:Socket, false)

      ::ActionCable.singleton_class.prepend(Installed)
      ActiveSupport.on_load(:action_cable_connection) { prepend ConnectionTopics }
      ActiveSupport.on_load(:action_cable_channel) { prepend ChannelStreams }
    end
  end
end
