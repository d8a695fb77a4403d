# frozen_string_literal: true

module ApplicationCable
  # What all channels share. Turbo's own are below it.
  class Channel < ActionCable::Channel::Base
  end
end
