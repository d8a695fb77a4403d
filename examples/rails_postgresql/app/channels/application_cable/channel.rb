# frozen_string_literal: true

module ApplicationCable
  # What all channels share.
  class Channel < ActionCable::Channel::Base
  end
end
