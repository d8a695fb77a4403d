# frozen_string_literal: true

module Heddle
  module PubSub
    # A message as a subscriber gets it.
    #
    # @!attribute topic [String]
    # @!attribute data [String, nil] in UTF-8, or in BINARY if it is not UTF-8; nil for a reset
    # @!attribute position [String] "epoch:offset": continue after it with `since:`
    Message = Data.define(:topic, :data, :position) do
      # @return [Boolean] whether messages before this one are lost: things that were made of them are out of date
      def reset? = data.nil?
    end
  end
end
