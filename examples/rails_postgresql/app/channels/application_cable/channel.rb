# frozen_string_literal: true

module ApplicationCable
  # All channels inherit from it.
  class Channel < ActionCable::Channel::Base
  end
end
