"""These modules write what the program itself knows into the pages of docs/, and check the pages and the site made of them."""
