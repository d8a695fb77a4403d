# frozen_string_literal: true

module Bench
  module Contestants
    # One thing after the other, for the rows that ask what concurrency buys.
    class Blocking < Contestant
      def key = "blocking"

      def label = "blocking"

      def role = :baseline

      def prepare = nil

      def version = "Ruby #{RUBY_VERSION}"

      def run = yield

      def spawn = yield
    end
  end
end
