# frozen_string_literal: true

require "heddle/web_socket"

module Heddle
  # Serves Action Cable without its threads: connections are WebSockets of this server, and a broadcast reaches each of
  # them without Ruby code. `config.heddle.cable = true` turns it on.
  #
  # @api private
  module Cable
    Autoloads.add(self, "heddle/cable")

    # Raised when the server of this application's Action Cable can't be replaced.
    class UnsupportedError < OwnError; end

    # The protocol of Action Cable, and AnyCable's, with positions.
    PROTOCOL = "actioncable-v1-json"
    EXTENDED_PROTOCOL = "actioncable-v1-ext-json"

    UNSUPPORTED = "config.heddle.cable needs the Action Cable of Rails 8.2, or the gem actioncable-next: add " \
                  "gem \"actioncable-next\" to the Gemfile, before Rails"
    private_constant :UNSUPPORTED

    # Makes `ActionCable.server` Heddle's.
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
