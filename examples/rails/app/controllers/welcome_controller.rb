# frozen_string_literal: true

# The start page.
class WelcomeController < ApplicationController
  def index; end
end
