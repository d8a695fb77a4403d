# frozen_string_literal: true

# Sends back what it was sent.
class EchoesController < ApplicationController
  skip_forgery_protection

  def create
    send_data request.raw_post, type: request.media_type, disposition: nil
  end
end
