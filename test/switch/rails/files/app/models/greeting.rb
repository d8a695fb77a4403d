# frozen_string_literal: true

module Greeting
  def self.text = "first"
end
