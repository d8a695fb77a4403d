# frozen_string_literal: true

module Bench
  module Contestants
    # evt with epoll: its io_uring backend does not start (it calls a method that it does not define), and it does not
    # offer it itself.
    class Evt < Contestant
      def key = "evt"

      def label = "evt epoll"

      def prepare = require("evt")

      def version = "#{Gem.loaded_specs.fetch("evt").version}, epoll"

      def scheduler = ::Evt::Epoll.new
    end
  end
end
