# frozen_string_literal: true

module Heddle
  # What a layer gets from one above it without knowing it. Loaded when it is first asked for.
  #
  # @api private
  module Assembly
    class << self
      # @return [#publish] takes the messages of a process that belongs to no server
      def publisher = Server::Control::Publisher

      # @return [#install, #driver] knows the drivers of databases, whose connections may be a {Pool}'s
      def drivers = Databases
    end
  end
end
