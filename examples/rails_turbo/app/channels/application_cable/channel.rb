# frozen_string_literal: true

module ApplicationCable
  # All channels inherit from it, Turbo's own as well.
  class Channel < ActionCable::Channel::Base
  end
end
